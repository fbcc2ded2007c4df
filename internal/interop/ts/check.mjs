import { test } from 'node:test';

/** Runs one check. The limit is long because the machine may be busy. */
export const check = (name, fn) => test(name, { timeout: 300_000 }, fn);

/** Returns a promise with its resolve and reject functions. */
export const later = () => Promise.withResolvers();
