// What the rest of the page is made with. Data becomes text nodes and attributes, never markup.

export const $ = id => document.getElementById(id)

// el makes an element: el('td', {class: 'num'}, 'text', child).
export function el(tag, attrs = {}, ...children) {
  return fill(document.createElement(tag), attrs, children)
}

// svg makes an element of a picture.
export function svg(tag, attrs = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attrs, children)
}

function fill(e, attrs, children) {
  for (const [name, value] of Object.entries(attrs)) attr(e, name, value)
  e.append(...children)
  return e
}

// text and attr change what is not so already: most of a page stays as it is from one second to the next.
export function text(e, s) {
  if (e.textContent !== s) e.textContent = s
}

export function attr(e, name, value) {
  if (value === null || value === undefined || value === false) e.removeAttribute(name)
  else if (e.getAttribute(name) !== String(value)) e.setAttribute(name, value)
}

export function show(e, on) {
  if (e.hidden === on) e.hidden = !on
}

// rows keeps the children of a table body, or a list, in step with data: each item has a key, make makes the
// element of a new one, and update changes it. Elements stay, and with them the focus.
export function rows(parent, items, key, make, update) {
  const old = new Map()
  for (const e of parent.children) old.set(e.dataset.key, e)
  let at = parent.firstElementChild
  for (const item of items) {
    const k = String(key(item))
    let e = old.get(k)
    old.delete(k)
    if (!e) {
      e = make(item)
      e.dataset.key = k
    }
    if (e === at) at = at.nextElementSibling
    else parent.insertBefore(e, at)
    update(e, item)
  }
  for (const e of old.values()) e.remove()
}

const whole = new Intl.NumberFormat('en', {maximumFractionDigits: 0})
const tenths = new Intl.NumberFormat('en', {minimumFractionDigits: 1, maximumFractionDigits: 1})

// rate writes how often a second.
export function rate(n) {
  if (n === 0) return '0'
  return n < 10 ? tenths.format(n) : whole.format(n)
}

export const number = n => whole.format(n)

// share writes a part of 1 in per cent.
export function share(x) {
  const p = 100 * x
  if (p === 0) return '0 %'
  if (p < 0.1) return '< 0.1 %'
  return (p < 99.95 && p >= 0.1 ? p.toFixed(1) : p.toFixed(0)) + ' %'
}

// took writes a latency of so many seconds, null for none.
export function took(s) {
  if (s === null) return '–'
  if (s < 1e-3) return Math.round(s * 1e6) + ' µs'
  if (s < 1) return (s * 1e3).toFixed(s < 0.01 ? 2 : s < 0.1 ? 1 : 0) + ' ms'
  return s.toFixed(2) + ' s'
}

// span writes a longer time of so many seconds.
export function span(s) {
  if (s < 90) return Math.round(s) + ' s'
  if (s < 5400) return Math.round(s / 60) + ' min'
  if (s < 172800) return Math.round(s / 3600) + ' h'
  return Math.round(s / 86400) + ' days'
}

export function bytes(n) {
  for (const unit of ['B', 'kB', 'MB', 'GB']) {
    if (n < 999.5 || unit === 'GB') return (n < 9.95 && unit !== 'B' ? n.toFixed(1) : n.toFixed(0)) + ' ' + unit
    n /= 1000
  }
}

// clock writes the time of day, with the date if that is another than today's.
export function clock(iso) {
  const t = new Date(iso)
  const time = t.toTimeString().slice(0, 8)
  return t.toDateString() === new Date().toDateString() ? time : t.toISOString().slice(5, 10) + ' ' + time
}

// ofPool makes a path ask about the pool that the page shows, of a router that has several.
const pool = new URLSearchParams(location.search).get('pool')
export function ofPool(path, name = pool) {
  return name ? `${path}${path.includes('?') ? '&' : '?'}pool=${encodeURIComponent(name)}` : path
}

// ask fetches JSON; what went wrong is an Error with what the router says.
export async function ask(path, options = {}) {
  let answer
  try {
    answer = await fetch(path, options)
  } catch {
    throw new Error('The router cannot be reached.')
  }
  const body = await answer.text()
  if (!answer.ok) throw Object.assign(new Error(body.trim() || answer.statusText), {status: answer.status})
  return answer.headers.get('Content-Type') === 'application/json' ? JSON.parse(body) : body
}
