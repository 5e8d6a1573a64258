"""Pictures of tensors, drawn when the site is built.

Hand-made diagrams are where documentation goes wrong without anybody noticing.
So a picture here is a measurement: lines of torch are run, and what is drawn is what autograd and the tensors'
memory say.
The room knows neither Sphinx nor pages; it returns inline SVG that needs `pictures.css` and no script.
Nothing is imported here: Sphinx reads pictures that pages have drawn, and needs no torch for that.
"""
