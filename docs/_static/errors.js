// Finds the page of a pasted error message, in the browser alone: no request is made and nothing is stored.
// The steps and the numbers are those of docs/_ext/errors/match.py and template.py; a test holds the two equal.
// Pasted text is only ever read; what is shown comes from errors-data.js and is set as text, never as markup.
(() => {
  "use strict";

  const LETTERS = "abcdefghijklmnopqrstuvwxyz";
  const DIGITS = "0123456789";
  const CHARACTERS = {
    i: DIGITS + ".+-",
    n: DIGITS + LETTERS + ".+-",
    s: DIGITS + "torchsizeux" + "_,.[](){}*+-",
    w: DIGITS + LETTERS + "_.:<>*&-",
    t: "",
  };
  const LONGEST = { i: 40, n: 40, s: 240, w: 120, t: 400 };
  const ANCHOR = 16;
  const LAST_HITS = 20;
  const HEAD = 8;
  const BEGINS = 13;
  const BEGINS_LONG = [6, 24];
  const ENOUGH = 28;
  const GRAM = 5;
  const NEAR_SHARED = 14;
  const NEAR_SCORE = 0.45;
  const NEAR_MOST = 3;
  const MESSAGE_MOST = 600;
  const TEXT_MOST = 2000;

  const ESCAPE = /\x1b(?:\[[^@-~]{0,32}[@-~])?/g;
  const MARGIN = /(^|[\n\r])[ \t]*(?:E(?=[ \t]{2})|>(?=[ \t]))/g;
  const EXCEPTION_LINE = /(?:^|[\n\r])[ \t|]*(?:E[ \t]+)?(?:[A-Za-z_][A-Za-z0-9_.]*)?(?:Error|Exception|Warning): /g;

  // What each character below 128 becomes; 0 drops it. Others that become something stand in OTHERS.
  const BECOMES = new Uint8Array(128);
  for (let code = 0x21; code < 0x7f; code++) BECOMES[code] = code;
  for (let code = 0x41; code < 0x5b; code++) BECOMES[code] = code + 32;
  BECOMES["|".charCodeAt(0)] = 0;
  BECOMES["`".charCodeAt(0)] = "'".charCodeAt(0);
  const OTHERS = new Map();
  for (const [from, to] of [["´‘’‚‛′", "'"], ["“”„‟″", '"'], ["‐‑‒–—−", "-"]]) {
    for (const character of from) OTHERS.set(character.charCodeAt(0), to.charCodeAt(0));
  }
  const ELLIPSIS = "…".charCodeAt(0);
  const DOT = ".".charCodeAt(0);
  const decoder = new TextDecoder("latin1");

  function foldedCodes(text) {
    if (text.includes("\x1b")) text = text.replace(ESCAPE, "");
    text = text.replace(MARGIN, "$1");
    const codes = new Uint8Array(text.length * 3);
    let length = 0;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code < 128) {
        const becomes = BECOMES[code];
        if (becomes) codes[length++] = becomes;
      } else if (code === ELLIPSIS) {
        codes[length++] = codes[length++] = codes[length++] = DOT;
      } else {
        const becomes = OTHERS.get(code);
        if (becomes) codes[length++] = becomes;
      }
    }
    return codes.subarray(0, length);
  }

  const fold = (text) => decoder.decode(foldedCodes(text));

  function lastMessage(text) {
    let end = -1;
    for (const match of text.matchAll(EXCEPTION_LINE)) end = match.index + match[0].length;
    return end < 0 ? null : text.slice(end);
  }

  function allIn(text, start, end, kind) {
    const allowed = CHARACTERS[kind];
    if (!allowed) return true;
    for (let at = start; at < end; at++) if (!allowed.includes(text[at])) return false;
    return true;
  }

  function common(literal, text, at) {
    const length = Math.min(literal.length, text.length - at);
    let same = 0;
    while (same < length && literal.charCodeAt(same) === text.charCodeAt(at + same)) same++;
    return same;
  }

  // A part is a literal (string) or a placeholder's kind ([kind]).
  // Both walks return [where they stopped, agreeing literal characters, nothing contradicts].
  function forward(template, text, at, first) {
    const { parts } = template;
    let agreed = 0;
    for (let index = first; index < parts.length; index++) {
      const part = parts[index];
      if (typeof part === "string") {
        const same = common(part, text, at);
        agreed += same;
        at += same;
        if (same < part.length) return [at, agreed, at === text.length];
      } else if (index + 1 === parts.length) {
        break;
      } else {
        const kind = part[0];
        const head = parts[index + 1].slice(0, HEAD);
        const limit = Math.min(text.length, at + LONGEST[kind] + head.length);
        let found = text.slice(at + 1, limit).indexOf(head);
        if (found < 0) {
          // The text may end in the placeholder, or in the first letters of the literal behind it.
          let begun = head.length - 1;
          while (begun > 0 && !(text.length - begun > at && text.endsWith(head.slice(0, begun)))) begun--;
          const end = text.length - begun;
          return [at, agreed + begun, end - at <= LONGEST[kind] && allIn(text, at, end, kind)];
        }
        found += at + 1;
        if (!allIn(text, at, found, kind)) return [at, agreed, false];
        at = found;
      }
    }
    return [at, agreed, true];
  }

  function backward(template, text, at) {
    const { anchor, parts } = template;
    let agreed = 0;
    for (let index = anchor - 1; index >= 0; index--) {
      const part = parts[index];
      if (typeof part === "string") {
        const length = Math.min(part.length, at);
        if (text.slice(at - length, at) !== part.slice(part.length - length)) return [at, agreed, false];
        agreed += length;
        at -= length;
        if (length < part.length) return [at, agreed, true];
      } else if (index === 0) {
        break;
      } else {
        const kind = part[0];
        const tail = parts[index - 1].slice(-HEAD);
        const from = Math.max(0, at - LONGEST[kind] - tail.length);
        let found = text.slice(from, Math.max(from, at - 1)).lastIndexOf(tail);
        if (found < 0) return [at, agreed, at <= LONGEST[kind] && allIn(text, 0, at, kind)];
        found += from;
        if (!allIn(text, found + tail.length, at, kind)) return [at, agreed, false];
        at = found + tail.length;
      }
    }
    return [at, agreed, true];
  }

  const gramsOf = (folded) => {
    const grams = new Set();
    for (let at = 0; at + GRAM <= folded.length; at++) grams.add(folded.slice(at, at + GRAM));
    return grams;
  };

  const key4 = (codes, at) => (codes[at] << 24) | (codes[at + 1] << 16) | (codes[at + 2] << 8) | codes[at + 3];
  const slot = (key) => (key ^ (key >>> 11) ^ (key >>> 19)) & 0xffff;

  // pages: one list of templates ([anchor, parts]) a page. Answers name pages by their index.
  function makeSearch(pages) {
    const anchors = [];
    const byText = new Map();
    const templates = [];
    pages.forEach((ofPage, page) => {
      ofPage.forEach(([anchor, parts], order) => {
        const literal = parts.reduce((sum, part) => sum + (typeof part === "string" ? part.length : 0), 0);
        const template = { page, order, anchor, parts, literal };
        const text = parts[anchor].slice(0, ANCHOR);
        templates.push(template);
        if (!byText.has(text)) {
          byText.set(text, anchors.length);
          anchors.push({ codes: Uint8Array.from(text, (c) => c.charCodeAt(0)), owners: [] });
        }
        anchors[byText.get(text)].owners.push(template);
      });
    });

    // All anchors are looked for in one walk over the text: the first four characters name the candidates.
    const maybe = new Uint8Array(1 << 16);
    const byStart = new Map();
    for (const anchor of anchors) {
      const key = key4(anchor.codes, 0);
      maybe[slot(key)] = 1;
      if (!byStart.has(key)) byStart.set(key, []);
      byStart.get(key).push(anchor);
    }

    function places(codes) {
      const found = new Map();
      if (codes.length < 4) return found;
      let key = key4(codes, 0);
      for (let at = 0; ; ) {
        if (maybe[slot(key)] && byStart.has(key)) {
          for (const anchor of byStart.get(key)) {
            const length = anchor.codes.length;
            let same = 4;
            while (same < length && codes[at + same] === anchor.codes[same]) same++;
            if (same === length) {
              if (!found.has(anchor)) found.set(anchor, []);
              const all = found.get(anchor);
              all.push(at);
              if (all.length > LAST_HITS) all.shift();
            }
          }
        }
        if (++at + 4 > codes.length) return found;
        key = (key << 8) | codes[at + 3];
      }
    }

    function hits(codes, folded) {
      const found = [];
      const where = places(codes);
      for (const anchor of anchors) {
        for (const at of (where.get(anchor) || []).reverse()) {
          for (const template of anchor.owners) {
            const [end, ahead, cleanAhead] = forward(template, folded, at, template.anchor);
            const [start, behind, cleanBehind] = backward(template, folded, at);
            const literal = ahead + behind;
            const complete = cleanAhead && cleanBehind;
            if (literal >= ENOUGH || (complete && literal * 4 >= template.literal * 3)) {
              const { page, order } = template;
              found.push({ page, order, start, end, literal, complete });
            }
          }
        }
      }
      return found;
    }

    let gramOwners = null;
    // Templates that the message begins and does not contradict: it was cut before their anchor.
    function begun(folded) {
      const found = [];
      for (const template of templates) {
        const [, agreed, clean] = forward(template, folded, 0, 0);
        const long = agreed >= BEGINS_LONG[0] && folded.length >= BEGINS_LONG[1];
        if (clean && (agreed >= BEGINS || long)) found.push([agreed, template.order, template.page]);
      }
      found.sort((a, b) => b[0] - a[0] || a[1] - b[1] || a[2] - b[2]);
      return [...new Set(found.map(([, , page]) => page))];
    }

    function near(folded) {
      const wanted = gramsOf(folded.slice(0, MESSAGE_MOST));
      if (!gramOwners) {
        gramOwners = new Map();
        for (const template of templates) {
          const grams = new Set();
          for (const part of template.parts) if (typeof part === "string") for (const gram of gramsOf(part)) grams.add(gram);
          template.grams = grams.size;
          for (const gram of grams) {
            if (!gramOwners.has(gram)) gramOwners.set(gram, []);
            gramOwners.get(gram).push(template);
          }
        }
      }
      const shared = new Map();
      for (const gram of wanted) {
        for (const template of gramOwners.get(gram) || []) shared.set(template, (shared.get(template) || 0) + 1);
      }
      const best = new Map();
      for (const [template, count] of shared) {
        if (count < NEAR_SHARED) continue;
        const score = count / Math.min(wanted.size, template.grams);
        if (score >= NEAR_SCORE && score > (best.get(template.page) || 0)) best.set(template.page, score);
      }
      return [...best].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, NEAR_MOST).map(([page]) => page);
    }

    return (text) => {
      const codes = foldedCodes(text);
      const folded = decoder.decode(codes);
      const found = hits(codes, folded);
      found.sort((a, b) => b.complete - a.complete || b.literal - a.literal || b.start - a.start || a.order - b.order || a.page - b.page);
      const kept = [];
      const lesser = [];
      for (const hit of found) {
        const overlaps = kept.some((other) => hit.start < other.end && other.start < hit.end);
        (overlaps ? lesser : kept).push(hit);
      }
      kept.sort((a, b) => b.complete - a.complete || b.start - a.start || a.order - b.order || a.page - b.page);
      const pagesFound = [...new Set([...kept, ...lesser].map((hit) => hit.page))];
      if (pagesFound.length) return { hits: pagesFound, near: [] };
      const message = lastMessage(text);
      const compared = message !== null ? fold(message.slice(0, 20 * MESSAGE_MOST)) : folded;
      if (message === null && folded.length > TEXT_MOST) return { hits: [], near: [] };
      const pagesBegun = begun(compared);
      return { hits: pagesBegun, near: pagesBegun.length ? [] : near(compared) };
    };
  }

  const element = (name, text, className) => {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    if (className) made.className = className;
    return made;
  };

  const HITS_SHOWN = 4;

  function start(box, data) {
    const search = makeSearch(data.map((page) => page.templates));
    const root = document.documentElement.dataset.content_root || "";
    const input = box.querySelector("textarea");
    const status = box.querySelector("[role=status]");
    const list = box.querySelector("ol");

    const item = (number) => {
      const page = data[number];
      const made = element("li");
      const link = element("a", page.title);
      link.href = root + page.url;
      made.append(link, element("p", page.summary));
      return made;
    };

    let last = null;
    const answer = () => {
      if (input.value === last) return;
      last = input.value;
      const { hits, near } = search(last);
      const shown = hits.length ? hits.slice(0, HITS_SHOWN) : near;
      list.replaceChildren(...shown.map(item));
      let said = "No page knows this message.";
      if (!last.trim()) said = "";
      else if (hits.length === 1) said = "This message has a page:";
      else if (hits.length) said = "Several messages stand in this text, the last one first:";
      else if (near.length) said = "No page knows this message. These come near:";
      // Set only when it changes: it is read out whenever it is set.
      if (status.textContent !== said) status.textContent = said;
    };
    input.addEventListener("input", answer);
    box.hidden = false;
    answer(); // a browser may bring back what stood here before
  }

  globalThis.errorSearch = { fold, lastMessage, makeSearch };
  if (typeof document !== "undefined") {
    const run = () => {
      for (const box of document.querySelectorAll(".paste-message")) start(box, globalThis.errorPages || []);
    };
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", run);
    else run();
  }
})();
