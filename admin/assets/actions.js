// What changes something: drain, undrain, reload. Each is asked about first, and with a token if the router wants one.

import {$, ask, ofPool, show, text} from './dom.js'

let wants = 'none'
let token = '' // of this page, until it is closed
let act = null

let pool = '' // that is shown, of several

export function showActions(overview) {
  wants = overview.actions
  pool = overview.pool
  show($('reload'), wants !== 'none')
}

export function askDrain(server, undo) {
  const path = ofPool(`/api/v1/${undo ? 'undrain' : 'drain'}?server=${encodeURIComponent(server)}`, pool)
  if (undo) open(`Undrain ${server}?`, 'It returns, emptied, when it has answered for a while, and gets its keys back.', 'Undrain', path, `${server} returns.`)
  else open(`Drain ${server}?`, 'All routers move its keys to the other servers, which fetch from it what they miss. It serves until that is over, and can be undrained.', 'Drain', path, `${server} drains.`)
}

function open(title, words, yes, path, done) {
  act = {path, done}
  text($('ask-title'), title)
  text($('ask-text'), words)
  text($('ask-yes'), yes)
  show($('ask-token'), wants === 'token')
  $('token').value = token
  show($('ask-error'), false)
  $('ask').showModal()
  if (wants === 'token' && !token) $('token').focus()
  else $('ask-yes').focus()
}

async function go() {
  $('ask-yes').disabled = true
  try {
    if (wants === 'token') token = $('token').value
    await ask(act.path, {method: 'POST', headers: token ? {Authorization: 'Bearer ' + token} : {}})
    text($('done'), act.done)
    $('ask').close()
  } catch (err) {
    if (err.status === 403) token = ''
    text($('ask-error'), err.message)
    show($('ask-error'), true)
  }
  $('ask-yes').disabled = false
}

export function prepareActions() {
  $('ask-yes').addEventListener('click', go)
  $('token').addEventListener('keydown', e => {
    if (e.key === 'Enter') {
      e.preventDefault()
      go()
    }
  })
  $('reload').addEventListener('click', () => open('Reload the configuration?',
    'The file is read again. One that has a fault changes nothing, and the fault is shown here.', 'Reload', '/api/v1/reload', 'The configuration has been reloaded.'))
}
