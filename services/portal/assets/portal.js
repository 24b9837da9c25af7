// Refreshes the figures of a page, and copies commands; everything else works without it.
"use strict";

const status = document.getElementById("status");

async function refresh() {
  // What a person has focused or selected must not disappear.
  if (document.hidden || status.contains(document.activeElement)) return;
  try {
    const response = await fetch(status.dataset.source);
    if (response.ok) status.innerHTML = await response.text();
  } catch {
    // The portal is away; the time under the figures says how old they are.
  }
}

if (status) setInterval(refresh, 5000);

for (const form of document.querySelectorAll('form[method="post"]')) {
  form.addEventListener("submit", () => {
    const button = form.querySelector("button");
    button.setAttribute("aria-disabled", "true");
    button.textContent = button.dataset.busy;
  });
}

if (navigator.clipboard) {
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not copied";
      }
    });
  }
}
