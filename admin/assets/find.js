// The search box: where is a key, and why.

import {$, ask, el, number, rate, share, show} from './dom.js'
import {selected, pin} from './placement.js'

let asked = 0

export function prepareFind() {
  $('find').addEventListener('submit', e => {
    e.preventDefault()
    const key = $('key').value
    if (key) find(key, key.includes('\\'))
  })
  addEventListener('keydown', e => {
    const typing = e.target.closest?.('input, dialog')
    if (e.key === '/' && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) {
      e.preventDefault()
      $('key').focus()
    }
    if (e.key === 'Escape' && !document.querySelector('dialog[open]')) close()
  })
}

// find shows where a key is; quoted says that it is written as in the list of hot keys.
export async function find(key, quoted) {
  const mine = ++asked
  $('key').value = key
  let shown
  try {
    shown = answer(await ask(`/api/v1/where?${quoted ? 'quoted' : 'key'}=${encodeURIComponent(key)}`))
  } catch (err) {
    shown = [title('Not found'), el('p', {class: 'bad', role: 'alert'}, err.message)]
  }
  if (mine !== asked) return // another one was asked for meanwhile
  const away = el('button', {type: 'button', class: 'close'}, 'Close')
  away.addEventListener('click', close)
  $('where').replaceChildren(...shown, away)
  show($('where'), true)
  $('where').focus()
  $('where').scrollIntoView({block: 'nearest'})
}

function close() {
  asked++
  if ($('where').hidden) return
  show($('where'), false)
  $('key').focus()
}

const title = (...words) => el('h2', {id: 'where-title'}, ...words)

function answer(w) {
  const why = el('ul', {}, ...w.why.map(s => el('li', {}, s)))
  const places = el('table', {},
    el('thead', {}, el('tr', {}, ...['Rank', 'Server', 'Reads', 'Writes', 'Load of bound'].map(s => el('th', {scope: 'col'}, s)))),
    el('tbody', {}, ...w.candidates.map((c, rank) => candidate(w, c, rank))))
  const hot = w.hot ? [el('p', {class: 'note'}, `${rate(w.hot.rate)} requests a second, ${share(w.hot.share)} of all; ${w.hot.level} for ${number(w.hot.for)} s.`)] : []
  if (selected() !== w.home) pin(w.home)
  return [title(el('span', {class: 'key'}, w.key), ` is on ${w.home}`), why, ...hot, places]
}

function candidate(w, c, rank) {
  const uses = [w.reads === c.server && 'here', w.writes === c.server && 'here']
  return el('tr', {},
    el('td', {}, rank === 0 ? 'home' : c.copy ? 'copy' : String(rank)),
    el('th', {scope: 'row'}, c.server),
    el('td', {}, uses[0] || '–'),
    el('td', {class: rank === 0 && !w.writes ? 'bad' : ''}, uses[1] || (rank === 0 && !w.writes ? 'refused' : '–')),
    el('td', {}, c.bound ? `${number(c.load)} of ${number(c.bound)}` : '–'))
}
