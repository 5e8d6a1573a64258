"use strict";

// Code, tables and formulas that are wider than the page scroll: let the keyboard reach those, and only those.
{
  const wide = ".highlight pre, .table-wrapper, .math-wrapper, .drawing";
  const mark = (box) => {
    if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  };
  const watch = new ResizeObserver((entries) => entries.forEach((entry) => mark(entry.target)));
  document.querySelectorAll(wide).forEach((box) => watch.observe(box));
}
