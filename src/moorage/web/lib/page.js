// Preact, its hooks and the template tag `html`: what every other module of the page draws with.

import {h, render, Fragment} from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export {h, render, Fragment};
export {useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback, useErrorBoundary} from "../vendor/hooks.js";

export const html = htm.bind(h);

/** A value that components follow: `use()` reads it and draws again when it changes. */
export function shared(value) {
  const watchers = new Set();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const one of [...watchers]) one(value);
    },
    watch(one) {
      watchers.add(one);
      return () => watchers.delete(one);
    },
  };
}
