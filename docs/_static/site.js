"use strict";

// Code, tables and formulas that are wider than the page scroll: let the keyboard reach those, and only those.
{
  const mark = (box) => {
    const scrolls = box.scrollWidth > box.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(box).overflowX);
    if (scrolls) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  };
  const watch = new ResizeObserver((entries) => entries.forEach((entry) => mark(entry.target)));
  const wide = "pre, .table-wrapper, .math-wrapper, .drawing, .facts-table";
  document.querySelectorAll(wide).forEach((box) => watch.observe(box));
}
