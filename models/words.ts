/** `1 crash`, `2 crashes`: for the names of models. */
export const counted = (count: number, one: string, several: string = `${one}s`): string =>
  `${count} ${count === 1 ? one : several}`;
