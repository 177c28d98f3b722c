// Finds what would keep somebody from using the page: controls without a name, tables whose headings are not marked,
// text that is hard to see. It gives a list of complaints. Run it in the page.
(() => {
  const complaints = []
  const complain = (what, e) => complaints.push(`${what}: ${e.outerHTML.slice(0, 120)}`)
  const visible = e => e.checkVisibility({visibilityProperty: true, opacityProperty: true}) && e.getClientRects().length > 0

  // One colour over another, as red, green, blue from 0 to 255.
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true})
  const rgba = colour => {
    canvas.clearRect(0, 0, 1, 1)
    canvas.fillStyle = colour
    canvas.fillRect(0, 0, 1, 1)
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data
    return {c: [r, g, b], a: a / 255}
  }
  const over = (top, below) => top.c.map((v, i) => v * top.a + below[i] * (1 - top.a))
  const behind = e => {
    const layers = []
    for (let at = e; at; at = at.parentElement) layers.unshift(rgba(getComputedStyle(at).backgroundColor))
    return layers.reduce((below, top) => over(top, below), [255, 255, 255])
  }
  const light = c => {
    const [r, g, b] = c.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const contrast = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p)
    return (x + 0.05) / (y + 0.05)
  }

  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement
    if (!texts.currentNode.data.trim() || !visible(e) || e.closest('svg, .quiet, script, noscript')) continue
    const style = getComputedStyle(e)
    const size = parseFloat(style.fontSize)
    const large = size >= 24 || size >= 18.66 && style.fontWeight >= 700
    const paper = behind(e)
    const got = contrast(over(rgba(style.color), paper), paper)
    if (got < (large ? 3 : 4.5)) complain(`contrast ${got.toFixed(2)}`, e)
    if (size < 12) complain(`text of ${size} px`, e)
  }

  const nameOf = e => {
    const by = e.getAttribute('aria-labelledby')
    return e.getAttribute('aria-label') || by && document.getElementById(by)?.textContent || e.textContent.trim() ||
      [...(e.labels ?? [])].map(l => l.textContent).join('').trim()
  }
  for (const e of document.querySelectorAll('a[href], button, input, select, [role=img], [role=progressbar], section, dialog')) {
    if (visible(e) && !nameOf(e)) complain('no name', e)
  }
  for (const e of document.querySelectorAll('img')) if (!e.hasAttribute('alt')) complain('no alt', e)
  for (const e of document.querySelectorAll('th')) if (!e.scope) complain('no scope', e)
  for (const e of document.querySelectorAll('table')) if (!e.querySelector('thead th')) complain('no headings', e)
  for (const e of document.querySelectorAll('a[href], button, input')) if (e.tabIndex < 0) complain('not reached by the keyboard', e)
  for (const e of document.querySelectorAll('[tabindex]')) if (e.tabIndex > 0) complain('an order of its own', e)
  for (const e of document.querySelectorAll('[aria-live=polite]')) if (e.id !== 'sentence') complain('talks too much', e)

  const ids = [...document.querySelectorAll('[id]')].map(e => e.id)
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) complaints.push('twice: ' + id)
  for (const tag of ['h1', 'main', 'body > header', 'body > footer', 'search']) {
    if (document.querySelectorAll(tag).length !== 1) complaints.push(`not one ${tag}`)
  }
  if (!document.documentElement.lang) complaints.push('no language')
  const wide = document.scrollingElement.scrollWidth - innerWidth
  if (wide > 0) complaints.push(`${wide} px wider than the window`)
  return complaints
})()
