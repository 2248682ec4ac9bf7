/** What can follow a command line: by the command with its subcommands, such as `gpurent offers create`. */
export type Words = ReadonlyMap<string, readonly string[]>;

const cases = (words: Words, line: (path: string, following: string) => string): string =>
  [...words].map(([path, following]) => line(path, following.join(' '))).join('\n');

/** The longest known command at the beginning of the line, in the words of bash and zsh. */
const LONGEST = `  local path=gpurent word
  for word in "\${before[@]}"; do
    case "$(_gpurent_words "$path $word")" in ?*) path="$path $word" ;; esac
  done`;

const wordsFunction = (words: Words): string => `_gpurent_words() {
  case "$1" in
${cases(words, (path, following) => `  '${path}') echo '${following}' ;;`)}
  esac
}`;

export const bashCompletion = (words: Words): string => `# gpurent completion bash > /etc/bash_completion.d/gpurent
${wordsFunction(words)}
_gpurent() {
  local before=("\${COMP_WORDS[@]:1:COMP_CWORD-1}")
${LONGEST}
  COMPREPLY=($(compgen -W "$(_gpurent_words "$path")" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _gpurent gpurent
`;

export const zshCompletion = (words: Words): string => `#compdef gpurent
# gpurent completion zsh > a folder of $fpath, as _gpurent
${wordsFunction(words)}
_gpurent() {
  local before=("\${words[@]:1:CURRENT-2}")
${LONGEST}
  compadd -- \${=$(_gpurent_words "$path")}
  _files
}
compdef _gpurent gpurent
`;

export const fishCompletion = (
  words: Words,
): string => `# gpurent completion fish > ~/.config/fish/completions/gpurent.fish
function __gpurent_words
  switch "$argv"
${cases(words, (path, following) => `    case '${path}'; string split ' ' '${following}'`)}
  end
end
function __gpurent_complete
  set -l path gpurent
  for word in (commandline -opc)[2..]
    if test (count (__gpurent_words $path $word)) -gt 0
      set path $path $word
    end
  end
  __gpurent_words $path
end
complete -c gpurent -a '(__gpurent_complete)'
`;
