"use strict";
// A short guided tour: one part of the page after the other.

const tour = () => [
  ["image", "Start from an image", model().encoder
    ? "Another or Pick… takes one of the data set; Open yours… or dropping a file takes your own, which is encoded here. Beside it is what the model makes of its code."
    : "Another or Pick… takes another start. The image is what the model makes of its code."],
  ["latents", "Move a latent", "Every slider is one number of the code. Those at the top are used most, grey ones are not used at all. The pencil names a latent; the name is in the link and in the pictures."],
  ["traversals", "See what each one does", "A row moves one latent and leaves the others. Move the mouse along a row and watch the large image; click to keep it."],
  ...(Object.keys(model().matrices).length
    ? [["factors", "Compare with what is known", "The stronger the colour of a cell, the more this latent tells about that factor. Choose a cell to see both for real images."]]
    : []),
  ["scatter", "Two at a time", `Codes in two latents${hasFactors && model().encoded ? ", coloured by a factor" : ""}. Click or drag to decode any position.`],
  ["swap", "Swap", "Give image B one latent of image A. If a latent means one thing, one thing changes."],
  ["compare", "Two models", "The same image in both, each latent beside the one it is matched with."],
  ["link-button", "Share a view", "The address holds what you see, names included. Copy link and send it together with the file."],
];
let tourStep = -1;

function showTour(step) {
  const steps = tour().filter(([id]) => !byId(id).hidden);
  document.querySelector(".toured")?.classList.remove("toured");
  tourStep = step;
  byId("tour").hidden = step < 0 || step >= steps.length;
  if (byId("tour").hidden) {
    tourStep = -1;
    byId("tour-button").focus();
    return;
  }
  const [id, heading, text] = steps[step];
  byId("tour-heading").textContent = heading;
  byId("tour-text").textContent = text;
  byId("tour-step").textContent = `${step + 1} of ${steps.length}`;
  byId("tour-previous").disabled = step === 0;
  byId("tour-next").textContent = step === steps.length - 1 ? "Done" : "Next";
  byId(id).classList.add("toured");
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const isTall = byId(id).offsetHeight > innerHeight / 2; // then its heading is what to see first
  byId(id).scrollIntoView({ block: isTall ? "start" : "center", behavior: calm ? "auto" : "smooth" });
  byId("tour-next").focus({ preventScroll: true });
}

function connectTour() {
  byId("tour-button").addEventListener("click", () => showTour(0));
  byId("tour-next").addEventListener("click", () => showTour(tourStep + 1));
  byId("tour-previous").addEventListener("click", () => showTour(tourStep - 1));
  byId("tour-close").addEventListener("click", () => showTour(-1));
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && tourStep >= 0) showTour(-1);
  });
}
