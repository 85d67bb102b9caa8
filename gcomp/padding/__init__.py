"""Programs for padded sizes: which elements of each value are real, and how ops are kept from reading the others.

`layouts` says where the real elements of a padded tensor lie, `lengths` builds true sizes and masks, `table` has a row
for each op (`rows` fills it), `programs` pads a program, and `buckets` chooses the sizes to pad to.
"""
