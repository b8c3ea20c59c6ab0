/** `1 crash`, `2 crashes`, `1,200 steps`. */
export const counted = (count: number, one: string, several: string = `${one}s`): string =>
  `${count.toLocaleString("en-US")} ${count === 1 ? one : several}`;
