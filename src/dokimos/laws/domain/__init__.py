"""A domain: the inputs that a law is about, their features, the model, and functions for laws to call.

A domain is a plain Python file (or package). What it may define, all of it optional:

    FEATURES   a list of names, or of features made by `integer`, `real`, `flag`, `choice` and `text`
    CONSTRAINTS  what is true of every record: 'is_recid == 0 ==> r_charge_degree == "none"'
    INDICES    {-1: "job"}: further indices that laws may use for features
    CLASSES    names of the decisions 0, 1, …, from the least to the greatest
    DECISION   what is decided, for sentences: "risk"
    ORDERED    False where a greater decision is not more of it: sentences then say "changes", not "rises"
    inputs()   the test set: an array with one record a row, or a list of records
    labels()   the right decision of each input
    model()    the model to test where none is given: anything that laws/models takes
    MODELS     {"tree": function}: further models by name, each made by a function like model()
    GROUPS     names of features to report rates by where no others are asked for
    decide(s)  decisions from what the model gives for a batch, where that is not simply the largest
    encode(xs) the numbers that a network sees of a batch of records, where they are not the records
    picture(x) a record as a picture: a 2-D array of uint8, 0 black (or 3-D: red, green, blue)
    text(x)    a record as text
    start(rng)              a record to begin from, for `dokimos law fuzz`
    walk(x, rng, predict)   records reached from there, some of which the model (`predict`) has chosen
    any other public function f(...), for laws to call, on single records and values; beside it
    f_batch(...) takes arrays instead, one row for each case; a parameter `rng` gets a seeded generator, and
    `predict`, in functions that the block calls, the model: decisions for a batch
"""
