// The notebook's side: a page in a sandbox, and the joints in the widget's model.

function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts allow-downloads");
  frame.title = "alembert viewer";
  frame.style.cssText = `width: 100%; height: ${Number(model.get("height"))}px; border: 1px solid #8884; border-radius: 8px`;
  frame.srcdoc = model.get("page");
  const heard = (event) => {
    if (event.source !== frame.contentWindow || !event.data) return;
    if (event.data.alembert !== "moved" || !Array.isArray(event.data.x)) return;
    model.set("x", event.data.x);
    model.save_changes();
  };
  const tell = () => { if (frame.contentWindow) frame.contentWindow.postMessage({ alembert: "move", x: model.get("x") }, "*"); };
  window.addEventListener("message", heard);
  frame.addEventListener("load", tell);
  model.on("change:x", tell);
  el.append(frame);
  return () => { window.removeEventListener("message", heard); model.off("change:x", tell); };
}

export default { render };
