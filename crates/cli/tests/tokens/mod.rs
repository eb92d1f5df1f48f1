//! Rust sources as words and marks.

/// Part of a Rust source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Word(String),
    Mark(char),
}

/// Returns the tokens of a source with their lines, without comments, strings, numbers' suffixes and lifetimes.
pub(crate) fn tokens(source: &str) -> Vec<(usize, Token)> {
    let text: Vec<char> = source.chars().collect();
    let at = |i: usize| text.get(i).copied().unwrap_or('\0');
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut line, mut i) = (Vec::new(), 1, 0);
    while i < text.len() {
        let start = i;
        match at(i) {
            '/' if at(i + 1) == '/' => i += text[i..].iter().take_while(|c| **c != '\n').count(),
            '/' if at(i + 1) == '*' => {
                let mut depth = 0;
                loop {
                    match (at(i), at(i + 1)) {
                        ('/', '*') => (depth, i) = (depth + 1, i + 2),
                        ('*', '/') => (depth, i) = (depth - 1, i + 2),
                        _ => i += 1,
                    }
                    if depth == 0 || i >= text.len() {
                        break;
                    }
                }
            }
            '"' => {
                i += 1;
                while i < text.len() && at(i) != '"' {
                    i += if at(i) == '\\' { 2 } else { 1 };
                }
                i += 1;
            }
            '\'' if at(i + 1) == '\\' => {
                i += 3 + text[i + 3..].iter().take_while(|c| **c != '\'').count() + 1
            }
            '\'' if at(i + 2) == '\'' => i += 3,
            '\'' => i += 1 + text[i + 1..].iter().take_while(|c| is_word(**c)).count(),
            c if is_word(c) => {
                let word: String = text[i..].iter().take_while(|c| is_word(**c)).collect();
                i += word.chars().count();
                let hashes = text[i..].iter().take_while(|c| **c == '#').count();
                if matches!(&word[..], "r" | "br") && at(i + hashes) == '"' {
                    let end: String = format!("\"{}", "#".repeat(hashes));
                    i += hashes + 1;
                    while i < text.len() && !text[i..].iter().take(end.len()).copied().eq(end.chars()) {
                        i += 1;
                    }
                    i += end.len();
                } else {
                    found.push((line, Token::Word(word)));
                }
            }
            c => {
                i += 1;
                if !c.is_whitespace() {
                    found.push((line, Token::Mark(c)));
                }
            }
        }
        line += text[start..i.min(text.len())].iter().filter(|c| **c == '\n').count();
    }
    found
}
