// A colour for each type, the same everywhere and every time, readable on light and dark.

import { isDark } from "../theme.js";

const HUES = [158, 28, 214, 338, 264, 48, 188, 8, 296, 92];
const given = new Map();

export function typeColour(type) {
  if (!given.has(type)) given.set(type, given.size);
  const place = given.get(type);
  const hue = (HUES[place % HUES.length] + 17 * Math.floor(place / HUES.length)) % 360;
  return rgb(hue, isDark() ? 0.42 : 0.4, isDark() ? 0.64 : 0.47);
}

export function variable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// The picture's WebGL wants hexadecimal.
function rgb(hue, saturation, lightness) {
  const channel = (n) => {
    const k = (n + hue / 30) % 12;
    const value = lightness - saturation * Math.min(lightness, 1 - lightness) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return Math.round(255 * value).toString(16).padStart(2, "0");
  };
  return `#${channel(0)}${channel(8)}${channel(4)}`;
}
