"""Just enough of C++ for the tidy checks: code apart from comments and strings, and functions."""
import re

TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/'
    r'|R"(?P<delim>[^()\\ ]{0,16})\(.*?\)(?P=delim)"'
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)*'", re.S)


def split(text):
    """Returns (code, remarks): both as long as the text, line for line. `code` has comments and
    literals blanked; `remarks` has everything else blanked."""
    code, remarks, last = [], [], 0
    for match in TOKEN.finditer(text):
        between, found = text[last:match.start()], match.group()
        code += [between, blank(found)]
        remarks += [blank(between), found]
        last = match.end()
    return "".join(code) + text[last:], "".join(remarks) + blank(text[last:])


def literals(text):
    """Yields (line, string literal)."""
    for match in TOKEN.finditer(text):
        if match.group()[0] in '"R':
            yield line_of(text, match.start()), match.group()


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def without_preprocessor(code):
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: blank(m.group()), code, flags=re.M)


def functions(code):
    """Yields (first line, last line, head) of every function body that is not inside another."""
    code = without_preprocessor(code)
    stack, head_start, depth_in_function = [], 0, 0
    for match in re.finditer(r"[{};]", code):
        char, at = match.group(), match.start()
        if char == "{":
            kind = "inner" if depth_in_function else classify(code[head_start:at])
            if kind in ("function", "opaque") or depth_in_function:
                depth_in_function += 1
            stack.append((kind, at, code[head_start:at]))
        elif char == "}" and stack:
            kind, start, head = stack.pop()
            if depth_in_function:
                depth_in_function -= 1
            if kind == "function":
                yield line_of(code, start), line_of(code, at), " ".join(head.split())
        if not depth_in_function:
            head_start = at + 1


def classify(head):
    """What a `{` after `head` opens: function, scope (namespace, class), or opaque (initialiser)."""
    flat = head
    while True:
        shorter = re.sub(r"\([^()]*\)", "@", flat)
        if shorter == flat:
            break
        flat = shorter
    flat = re.sub(r"\boperator\s*[^\s\w@(]+", "operator ", flat)
    if re.search(r"\b(namespace|extern)\b", flat):
        return "scope"
    if re.search(r"(?<![=!<>])=(?!=)", flat) or re.search(r"\benum\b", flat):
        return "opaque"
    if re.search(r"\b(class|struct|union)\b", flat) and not re.search(r"@\s*(const|noexcept|:|->|$)", flat):
        return "scope"
    return "function" if "@" in flat else "opaque"
