"""A domain: the inputs that laws are about, their features, the model, and functions for laws to call.

A domain is a plain Python file (or package). It may define the following; everything is optional:

    FEATURES   a list of names, or of features made by `integer`, `real`, `flag`, `choice` and `text`
    CONSTRAINTS  what is true of every record: 'is_recid == 0 ==> r_charge_degree == "none"'
    INDICES    {-1: "job"}: further indices that laws may use for features
    CLASSES    names of the decisions 0, 1, …, from the least to the greatest
    DECISION   a noun for the decision, used in sentences: "risk"
    ORDERED    False if decisions have no order: sentences then say "changes", not "rises"
    inputs()   the test set: an array with one record a row, or a list of records
    labels()   the right decision of each input
    unseen()   the numbers of the rows of inputs() that no model was trained on
    model()    the model to test if none is given: anything that laws/models accepts
    MODELS     {"tree": function}: further models by name, each made by a function like model()
    GROUPS     names of the features to report rates by, unless others are asked for
    decide(s)  decisions from the model's scores for a batch, if not simply the largest
    encode(xs) the network's input for a batch of records, if not the records themselves
    picture(x) a record as a picture: a 2-D array of uint8, 0 black (or 3-D: red, green, blue)
    text(x)    a record as text
    start(rng)              a record to start from, for `dokimos law fuzz`
    walk(x, rng, predict)   records reached from there, some of them by following the model (`predict`)
    any other public function f(...), for laws to call, on single records and values; beside it
    f_batch(...) takes arrays instead, one row for each case; a parameter `rng` gets a seeded generator, and
    `predict`, in functions that the block calls, the model: decisions for a batch
"""
