// Which index is looked at, and what the caller may do with it.

import { get } from "./api.js";

const STORED = "hornbeam.index";

export const session = {
  indexes: [],
  name: "",
  feedback: false,

  get index() {
    return this.indexes.find((one) => one.name === this.name) ?? null;
  },

  get mayOperate() {
    return this.index?.may_operate ?? false;
  },

  async load() {
    const found = await get("v1/indexes");
    this.indexes = found.indexes;
    this.feedback = found.feedback ?? false;
    const before = this.name || localStorage.getItem(STORED);
    this.name = this.indexes.some((one) => one.name === before) ? before : (this.indexes[0]?.name ?? "");
  },

  choose(name) {
    this.name = name;
    localStorage.setItem(STORED, name);
  },
};
