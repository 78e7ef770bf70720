// Places for the things of a picture: near what they are linked to, apart from the rest. For some hundred
// things; the same picture every time. Forces after Fruchterman and Reingold (1991).

const STEPS = 220;
const GOLDEN = Math.PI * (3 - Math.sqrt(5));

// `nodes`: [{weight}]; `edges`: [[from, to, weight]] by place. Returns [{x, y}].
export function arrange(nodes, edges) {
  const count = nodes.length;
  // A sunflower to begin with: even, and no two in one place.
  const places = nodes.map((_, at) => {
    const radius = Math.sqrt((at + 0.5) / count);
    return { x: radius * Math.cos(at * GOLDEN), y: radius * Math.sin(at * GOLDEN) };
  });
  if (count < 2) return places;
  const ideal = 1.6 / Math.sqrt(count);
  const strongest = Math.max(1, ...edges.map((edge) => edge[2]));
  for (let step = 0; step < STEPS; step++) {
    const reach = 0.12 * (1 - step / STEPS) + 0.002;
    const moves = places.map(({ x, y }) => ({ x: -0.6 * x, y: -0.6 * y }));
    for (let a = 0; a < count; a++) {
      for (let b = a + 1; b < count; b++) {
        const dx = places[a].x - places[b].x;
        const dy = places[a].y - places[b].y;
        const squared = Math.max(1e-6, dx * dx + dy * dy);
        const push = (ideal * ideal) / squared;
        moves[a].x += dx * push;
        moves[a].y += dy * push;
        moves[b].x -= dx * push;
        moves[b].y -= dy * push;
      }
    }
    for (const [a, b, weight] of edges) {
      const dx = places[a].x - places[b].x;
      const dy = places[a].y - places[b].y;
      const pull = (Math.hypot(dx, dy) / ideal) * (0.35 + 0.65 * Math.sqrt(weight / strongest));
      moves[a].x -= dx * pull;
      moves[a].y -= dy * pull;
      moves[b].x += dx * pull;
      moves[b].y += dy * pull;
    }
    moves.forEach((move, at) => {
      const length = Math.hypot(move.x, move.y) || 1;
      const far = Math.min(reach, length);
      places[at].x += (move.x / length) * far;
      places[at].y += (move.y / length) * far;
    });
  }
  return places;
}
