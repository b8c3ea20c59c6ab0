import { ChartError } from "./error.ts";

/** An element of an XML document; names keep their prefix, `at` is where the element starts. */
export interface XmlElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly XmlElement[];
  /** Character data directly inside the element, trimmed. */
  readonly text: string;
  readonly at: { readonly line: number; readonly column: number };
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
};

/** Text for an attribute value or character data. Characters that XML 1.0 forbids become U+FFFD. */
export function escapeXml(text: string): string {
  return text
    // deno-lint-ignore no-control-regex
    .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;").replaceAll("\n", "&#10;").replaceAll("\t", "&#9;");
}

/**
 * Reads one XML document: elements, attributes, text, comments, CDATA and the five named entities.
 * No DTD, no external entities. Throws `ChartError` (`chart.scxml-syntax`) with line and column.
 */
export function parseXml(text: string): XmlElement {
  return new Parser(text).document();
}

const NAME = /[A-Za-z_:][\w:.-]*/y;
const SPACE = /\s*/y;

class Parser {
  readonly #text: string;
  #pos = 0;

  constructor(text: string) {
    this.#text = text.replace(/^\ufeff/, "");
  }

  document(): XmlElement {
    this.#skipMisc();
    if (!this.#peek("<")) throw this.#error("a document starts with an element");
    const root = this.#element();
    this.#skipMisc();
    if (this.#pos < this.#text.length) throw this.#error("text after the end of the document");
    return root;
  }

  #element(): XmlElement {
    const at = this.#place(this.#pos);
    this.#expect("<");
    const name = this.#match(NAME, "the name of an element");
    const attributes: Record<string, string> = {};
    for (;;) {
      const before = this.#pos;
      this.#space();
      if (this.#take("/>")) return { name, attributes, children: [], text: "", at };
      if (this.#take(">")) break;
      if (this.#pos === before) throw this.#error("white space between attributes");
      const key = this.#match(NAME, `an attribute or the end of <${name}>`);
      if (Object.hasOwn(attributes, key)) throw this.#error(`attribute ${key} once`);
      this.#space();
      this.#expect("=");
      this.#space();
      attributes[key] = this.#value();
    }
    const children: XmlElement[] = [];
    let data = "";
    while (!this.#take("</")) {
      if (this.#pos >= this.#text.length) throw this.#error(`</${name}>`);
      if (this.#take("<!--")) this.#until("-->");
      else if (this.#take("<![CDATA[")) data += this.#until("]]>");
      else if (this.#take("<?")) this.#until("?>");
      else if (this.#peek("<")) children.push(this.#element());
      else data += this.#decode(this.#run("<"));
    }
    const closingAt = this.#pos;
    const closing = this.#match(NAME, `</${name}>`);
    if (closing !== name) throw this.#error(`</${name}>, not </${closing}>`, closingAt);
    this.#space();
    this.#expect(">");
    return { name, attributes, children, text: data.trim(), at };
  }

  #value(): string {
    const quote = this.#text[this.#pos];
    if (quote !== '"' && quote !== "'") throw this.#error("a quoted value");
    this.#pos++;
    const raw = this.#run(quote);
    if (raw.includes("<")) throw this.#error("no < inside an attribute value");
    this.#expect(quote);
    return this.#decode(raw.replaceAll(/[\n\t\r]/g, " "));
  }

  #decode(raw: string): string {
    return raw.replaceAll(/&([^;\s&]*);?/g, (whole, name: string) => {
      if (!whole.endsWith(";")) throw this.#error("a ; after an entity");
      const code = /^#(?:x([0-9a-f]+)|(\d+))$/i.exec(name);
      if (code) return String.fromCodePoint(parseInt(code[1] ?? code[2]!, code[1] ? 16 : 10));
      const known = ENTITIES[name];
      if (known === undefined) throw this.#error(`a known entity, not &${name};`);
      return known;
    });
  }

  #skipMisc(): void {
    for (;;) {
      this.#space();
      if (this.#take("<?")) this.#until("?>");
      else if (this.#take("<!--")) this.#until("-->");
      else if (this.#peek("<!DOCTYPE")) throw this.#error("no DOCTYPE");
      else return;
    }
  }

  #space(): void {
    SPACE.lastIndex = this.#pos;
    SPACE.test(this.#text);
    this.#pos = SPACE.lastIndex;
  }

  #match(pattern: RegExp, wanted: string): string {
    pattern.lastIndex = this.#pos;
    const found = pattern.exec(this.#text);
    if (!found) throw this.#error(wanted);
    this.#pos = pattern.lastIndex;
    return found[0];
  }

  /** Everything up to, not including, the next occurrence of `end`, or to the end of the document. */
  #run(end: string): string {
    const stop = this.#text.indexOf(end, this.#pos);
    const from = this.#pos;
    this.#pos = stop < 0 ? this.#text.length : stop;
    return this.#text.slice(from, this.#pos);
  }

  #until(end: string): string {
    const found = this.#run(end);
    this.#expect(end);
    return found;
  }

  #peek(token: string): boolean {
    return this.#text.startsWith(token, this.#pos);
  }

  #take(token: string): boolean {
    if (!this.#peek(token)) return false;
    this.#pos += token.length;
    return true;
  }

  #expect(token: string): void {
    if (!this.#take(token)) throw this.#error(token);
  }

  #place(position: number): { line: number; column: number } {
    const before = this.#text.slice(0, position);
    return { line: before.split("\n").length, column: position - before.lastIndexOf("\n") };
  }

  #error(wanted: string, at: number = this.#pos): ChartError {
    const { line, column } = this.#place(at);
    return new ChartError(
      "chart.scxml-syntax",
      `line ${line}, column ${column}: expected ${wanted}`,
    );
  }
}
