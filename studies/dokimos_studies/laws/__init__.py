"""The six case studies of the paper on Nomos: domains, laws, training, and our counts next to the paper's.

The domains of COMPAS and German credit come with Dokimos (`dokimos.laws.examples`), the other four with
this package, which registers them, so that `dokimos law test mnist` finds them where it is installed.
"""
