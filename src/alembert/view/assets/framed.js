"use strict";
// A page inside a widget: tells the frame around it where joints are, and puts them where that says.

(function framed() {
  let told = "";
  setInterval(() => {
    const player = window.alembert.current;
    if (!player || !player.x) return;
    const x = [...player.x], text = JSON.stringify(x);
    if (text === told) return;
    told = text;
    parent.postMessage({ alembert: "moved", x }, "*");
  }, 50);
  window.addEventListener("message", (event) => {
    const player = window.alembert.current, x = event.data && event.data.x;
    if (event.source !== parent || event.data.alembert !== "move" || !player || !player.x) return;
    if (!Array.isArray(x) || x.length !== player.x.length || !x.every(Number.isFinite)) return;
    told = JSON.stringify(x);
    player.x = Float64Array.from(x);
    player.write();
    player.pose();
  });
})();
