// Keeps the text of diagrams legible. The theme draws each diagram into a closed shadow, where no style sheet of the page
// reaches it, and shrinks it to the width of the page. A diagram whose text would be smaller than 10.5 px scrolls instead.
const SMALLEST = 10.5 / 16
const attachShadow = Element.prototype.attachShadow

Element.prototype.attachShadow = function (options) {
  const root = attachShadow.call(this, options)
  if (this.classList.contains("mermaid")) {
    // By the keyboard, too.
    this.tabIndex = 0
    this.setAttribute("role", "group")
    this.setAttribute("aria-label", "Diagram")
    new MutationObserver(() => {
      const svg = root.querySelector("svg")
      if (svg !== null) svg.style.minWidth = `${SMALLEST * parseFloat(svg.style.maxWidth)}px`
    }).observe(root, { childList: true })
  }
  return root
}
