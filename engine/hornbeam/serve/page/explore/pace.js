// Whether a picture keeps up while it is moved. Where WebGL is drawn by the processor, links and names take most
// of a frame: they are left out until it stands still.

const SLOW_MS = 36; // between two frames, of the middle one; 30 a second are 33
const FRAMES = 5;

// Watches from `begin` to `end`; calls `slow` once, as soon as a few frames in a row were.
export function paceOf(slow) {
  let moving = false;
  let told = false;
  let before = 0;
  let spent = [];

  function frame(now) {
    if (!moving || told) return;
    if (before) spent = [...spent, now - before].slice(-FRAMES);
    before = now;
    if (spent.length === FRAMES && spent.toSorted((a, b) => a - b)[FRAMES >> 1] > SLOW_MS) {
      told = true;
      slow();
      return;
    }
    requestAnimationFrame(frame);
  }

  return {
    begin() {
      if (moving) return;
      moving = true;
      before = 0;
      spent = [];
      requestAnimationFrame(frame);
    },
    end() {
      moving = false;
    },
    // Another picture may be easier.
    again() {
      told = false;
    },
  };
}
