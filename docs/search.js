// The search box of pages that are opened from a folder: there, browsers do not let the theme's own search read its index.
// `hooks.py` writes search/words.js, which sets `alembertPages`, a list of {location, title, text}.
if (location.protocol === "file:") {
  document.addEventListener("DOMContentLoaded", () => {
    const base = JSON.parse(document.getElementById("__config").textContent).base
    const box = document.querySelector('[data-md-component="search-query"]')
    const found = document.querySelector('[data-md-component="search-result"]')
    const said = found.querySelector(".md-search-result__meta")
    const list = found.querySelector(".md-search-result__list")
    const words = text => text.toLowerCase().split(/[^\p{L}\p{N}_.]+/u).filter(word => word)
    let pages = null

    const whole = document.querySelector('[data-md-component="search"]')
    const show = () => { if (whole.hidden) whole.hidden = false } // the theme takes a box away that it cannot serve
    new MutationObserver(show).observe(whole, { attributes: true, attributeFilter: ["hidden"] })
    show()

    // how well a page fits: every word has to occur, and counts ten times in the title
    const weight = (page, asked) => {
      let sum = 0
      for (const word of asked) {
        const times = 10 * (page.lowTitle.split(word).length - 1) + (page.lowText.split(word).length - 1)
        if (!times) return 0
        sum += times / Math.sqrt(page.lowText.length + 100)
      }
      return sum
    }

    const entry = (page, asked) => {
      const at = Math.max(0, page.lowText.indexOf(asked[0]) - 60)
      const item = document.createElement("li")
      item.className = "md-search-result__item"
      const link = item.appendChild(document.createElement("a"))
      link.className = "md-search-result__link"
      link.href = `${base}/${page.location}`
      const article = link.appendChild(document.createElement("article"))
      article.className = "md-search-result__article md-typeset"
      article.appendChild(document.createElement("h2")).textContent = page.title
      article.appendChild(document.createElement("p")).textContent = page.text.slice(at, at + 200)
      return item
    }

    const answer = () => {
      const asked = words(box.value)
      list.replaceChildren()
      if (!asked.length || !pages) {
        said.textContent = "Type to search"
        return
      }
      const fitting = pages.map(page => [weight(page, asked), page]).filter(([w]) => w).sort((a, b) => b[0] - a[0])
      said.textContent = fitting.length === 1 ? "1 place" : `${fitting.length} places`
      list.append(...fitting.slice(0, 30).map(([, page]) => entry(page, asked)))
    }

    const script = document.head.appendChild(document.createElement("script"))
    script.onload = () => {
      pages = window.alembertPages.map(page => ({
        ...page, lowTitle: page.title.toLowerCase(), lowText: page.text.toLowerCase(),
      }))
      answer()
    }
    script.src = `${base}/search/words.js`
    box.addEventListener("input", answer)
    const given = new URLSearchParams(location.search).get("q")
    if (given) {
      box.value = given
      document.getElementById("__search").checked = true
    }
  })
}
