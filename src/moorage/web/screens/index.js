// All screens in the order of the navigation. A further screen is one module and one line here.
//
// A screen is `{path, title, allowed(session), command(route, session), Screen}`, and may say `listed: false` and
// `under`, the screen in whose place of the navigation it stands. `Screen` is drawn with `{route, session}`.

import fleet from "./fleet.js";
import applications from "./applications.js";
import application from "./application.js";
import place from "./place.js";
import calendar from "./calendar.js";
import violations from "./violations.js";
import waiting from "./waiting.js";
import refusals from "./refusals.js";
import why from "./why.js";
import whatif from "./whatif.js";
import plans from "./plans.js";
import plan from "./plan.js";

export const SCREENS = [fleet, applications, application, place, calendar, violations, whatif, plans, plan, waiting, refusals, why];

/** The screen of a path: `/applications/{id}` is matched by `/applications/:id`. */
export function screenOf(path, screens = SCREENS) {
  return screens.find((one) => matches(one.path, path));
}

function matches(pattern, path) {
  const wanted = pattern.split("/");
  const given = path.replace(/\/$/, "").split("/");
  return wanted.length === given.length && wanted.every((part, index) => part.startsWith(":") ? given[index] : part === given[index]);
}
