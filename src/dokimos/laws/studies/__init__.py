"""The six case studies of the paper: domains, laws, training, and our counts beside the paper's.

    domains/, library/   each domain as users write theirs, and the files of its laws
    shipped              what the registry of domains loads, and what can be trained
    lander_*, speech_*, sentence_*, review_data, tokenizer    what single domains are made of
    network_training, tree_training, kept_files               models, trained once and kept
    jobs, runs, paper, comparison_table                       `dokimos law study`

Nothing imports this room but the commands `law train` and `law study`; laws reach their domains by name.
"""
