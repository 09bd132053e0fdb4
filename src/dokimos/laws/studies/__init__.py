"""The six case studies of the paper: domains, laws, training, and our counts next to the paper's.

    domains/, library/ each domain, written as users write theirs, and the files of its laws
    shipped              what the registry of domains loads, and what can be trained
    lander_*, speech_*, sentence_*, review_data, tokenizer    the parts of single domains
    network_training, tree_training, kept_files               models, trained once and cached
    jobs, runs, paper, comparison_table                       `dokimos law study`

Only the commands `law train` and `law study` import this package; laws find their domains by name.
"""
