// An error that nobody caught is printed as Node does it: file and line, the line
// itself, the error with its frames, its cause and its other fields.
const told = (() => {
  const { std, SyntaxError } = globalThis;
  const hints = {
    require: 'there is no require; write import … from "./module.mjs", and read JSON by JSON.parse(std.loadFile(path))',
    process: 'there is no process; arguments are in scriptArgs, standard input is std.in, std.exit(code) ends the script',
    module: 'CommonJS is not there; write export and import',
    exports: 'CommonJS is not there; write export and import',
    Intl: 'there is no Intl; format by hand',
    fetch: 'there is no fetch; "Requests and variables" in docs/authors.md says how a script asks the network',
  };
  const json = 'JSON files cannot be imported here: read them by JSON.parse(std.loadFile(path)), whose path begins in the working folder';
  const main = () => globalThis.scriptArgs?.[0] ?? '';
  const lineOf = (text, index) => text.slice(0, index).split('\n').length;

  // placed finds where an error is that tells no place of its own, or a wrong one.
  const placed = (error) => {
    const at = /\((\/[^()\n]*):(\d+):(\d+)\)|at (\/[^()\n]*):(\d+):(\d+)/.exec(error.stack ?? '');
    let [file, line, column] = at ? [at[1] ?? at[4], +(at[2] ?? at[5]), +(at[3] ?? at[6])] : [undefined, 0, 0];
    let hint = '', message = error.message;
    const missing = /^could not load module filename '(.*)'$/.exec(message)?.[1];
    if (missing !== undefined) {
      hint = 'names of modules begin with ./ and have their ending; what Node and its registry bring is not there';
      const text = std.loadFile(main()) ?? '', name = missing.split('/').at(-1);
      const found = [...text.matchAll(/['"]([^'"\n]+)['"]/g)].find((m) => m[1].split('/').at(-1) === name);
      if (found) [file, line, column] = [main(), lineOf(text, found.index), 0];
    } else if (error instanceof SyntaxError) {
      if (file?.endsWith('.json')) return { file, line, column, message, hint: json };
      const text = std.loadFile(file ?? main()) ?? '';
      const attributes = /\b(?:from|import)\s*\(?\s*['"][^'"\n]+['"]\s*,?\s*\{?\s*\b(with|assert)\b\s*:?\s*\{/.exec(text);
      const set = /\/(?:[^\/\n\\]|\\.)*(?:--|&&)(?:[^\/\n\\]|\\.)*\/[a-uw-z]*v/.exec(text);
      if (attributes) {
        hint = `import attributes are not there; ${json}`;
        [file, line, column] = [file ?? main(), lineOf(text, attributes.index), 0];
      } else if (!at && set) {
        hint = 'sets in regular expressions (-- and && with the flag v) are not there';
        [file, line, column] = [main(), lineOf(text, set.index), 0];
      } else if (at && /^\s*(?:import|export)\b/m.test(text)) {
        // qjs takes a module that has an error in it for a script, which has another one.
        try {
          std.evalScript(text, { compile_only: true, compile_module: true });
        } catch (e) {
          const real = /:(\d+):(\d+)/.exec(e.stack ?? '');
          if (real && e instanceof SyntaxError) [message, line, column] = [e.message, +real[1], +real[2]];
        }
      }
    } else if (error instanceof ReferenceError) {
      const name = /^(\w+) is not defined$/.exec(message)?.[1];
      hint = name !== undefined && Object.hasOwn(hints, name) ? hints[name] : '';
      // qjs knows the place of a global no better than that of its function.
      const text = file === undefined || name === undefined ? '' : std.loadFile(file) ?? '';
      const lines = text.split('\n'), has = new RegExp(`\\b${name}\\b`);
      if (text !== '' && !has.test(lines[line - 1])) [line, column] = [lines.findIndex((l, i) => i >= line && has.test(l)) + 1 || line, 0];
    }
    return { file, line, column, message, hint };
  };
  const all = (error) => {
    const { file, line, column, message, hint } = placed(error);
    const text = message === error.message ? inspect(error) : `SyntaxError: ${message}\n    at ${file}:${line}:${column}`;
    const source = file === undefined ? undefined : std.loadFile(file)?.split('\n')[line - 1]?.trimEnd();
    let place = '';
    if (source !== undefined && source.length <= 200) {
      const caret = column > 0 ? `\n${source.slice(0, column - 1).replace(/[^\t]/g, ' ')}^` : '';
      place = `${file}:${line}\n${source}${caret}\n\n`;
    } else if (file !== undefined) {
      place = `${file}:${line}\n\n`;
    }
    return `${place}${text}${hint && `\n${hint}`}`;
  };
  return (error, text) => {
    try {
      const said = all(error);
      Reflect.defineProperty(error, 'stack', { value: undefined, configurable: true }); // it is in the text
      return said;
    } catch {
      return text;
    }
  };
})();
