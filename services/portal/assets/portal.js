// Refreshes the parts of a page that change, and copies commands; everything else works without it.
"use strict";

const SECONDS = 5;

async function refresh(part) {
  // What a person has focused or selected must not disappear.
  const selection = document.getSelection();
  const isSelected = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  if (document.hidden || isSelected || part.contains(document.activeElement)) return;
  try {
    const response = await fetch(part.dataset.source);
    if (!response.ok) return;
    const text = await response.text();
    if (text === part.dataset.shown) return;
    part.dataset.shown = text;
    part.innerHTML = text;
    showCopyButtons(part);
    if ("untilLoaded" in part.dataset && part.querySelector("svg")) delete part.dataset.source;
  } catch {
    // The portal is away; the time under the figures says how old they are.
  }
}

function showCopyButtons(part) {
  if (!navigator.clipboard) return;
  for (const button of part.querySelectorAll("button[data-copy]")) button.hidden = false;
}

document.addEventListener("click", async event => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not copied";
  }
});

for (const form of document.querySelectorAll('form[method="post"]')) {
  form.addEventListener("submit", () => {
    const button = form.querySelector("button");
    button.setAttribute("aria-disabled", "true");
    button.textContent = button.dataset.busy;
  });
}

setInterval(() => document.querySelectorAll("[data-source]").forEach(refresh), SECONDS * 1000);
showCopyButtons(document);
