// The hook that lets a component follow a shared value.

import {useEffect, useState} from "../vendor/hooks.js";

/** The present value of something made by `shared`; the component is drawn again when it changes. */
export function useShared(value) {
  const [seen, see] = useState(value.get());
  useEffect(() => {
    see(value.get());
    return value.watch(see);
  }, [value]);
  return seen;
}
