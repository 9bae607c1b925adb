/** Put `text` on the clipboard; whether that worked. A frame may have to do it the old way. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = Object.assign(document.createElement('textarea'), { value: text });
    (document.querySelector('dialog[open]') ?? document.body).append(field); // a dialog lets nothing else be selected
    field.select();
    const done = document.execCommand('copy');
    field.remove();
    return done;
  }
}
