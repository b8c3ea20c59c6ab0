import { render } from "preact";
import { App } from "./app.tsx";
import { start } from "./store.ts";

const root = document.getElementById("app")!;
root.textContent = "";
render(<App />, root);
void start();
