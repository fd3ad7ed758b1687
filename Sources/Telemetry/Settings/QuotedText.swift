extension String {
    /// Returns the text in quotation marks on one line, truncated after `limit` characters.
    ///
    /// Quotation marks and backslashes are escaped, and all characters that a terminal or a log
    /// might interpret: control and format characters, and separators of lines and paragraphs.
    package func quoted(limit: Int = 200) -> String {
        "\"" + prefix(limit).escaped(quotes: true) + (count > limit ? "…\"" : "\"")
    }

    /// The text as a JSON string (RFC 8259 §7), which readers of logfmt and YAML accept too.
    package var jsonQuoted: String {
        var quoted = "\""
        for scalar in unicodeScalars {
            switch scalar {
            case "\"", "\\": quoted += "\\\(scalar)"
            case _ where scalar.isInvisible: quoted += scalar.jsonEscape
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }

    /// The text with the user information of a URL or an authority, all before the last `@`,
    /// replaced by `…`; unchanged if there is none.
    package var withoutUserinfo: String {
        guard let end = lastIndex(of: "@") else { return self }
        let start = firstRange(of: "://").map(\.upperBound) ?? startIndex
        return start <= end ? self[..<start] + "…" + self[end...] : self
    }

    /// The text on one line, without quotation marks, for names that are usually plain.
    package var singleLine: String { self[...].escaped(quotes: false) }
}

extension Substring {
    /// Returns the text with invisible characters escaped; if `quotes`, also quotation marks and
    /// backslashes.
    fileprivate func escaped(quotes: Bool) -> String {
        var text = ""
        for scalar in unicodeScalars {
            switch scalar {
            case "\"" where quotes, "\\" where quotes: text += "\\\(scalar)"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case _ where scalar.isInvisible:
                text += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}

extension Unicode.Scalar {
    /// True for control and format characters, and separators of lines and paragraphs; false for
    /// spaces.
    package var isInvisible: Bool {
        if isASCII { return value < 0x20 || value == 0x7F }
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: return true
        default: return false
        }
    }

    /// The escape of the character in a JSON string.
    package var jsonEscape: String {
        switch self {
        case "\n": return "\\n"
        case "\r": return "\\r"
        case "\t": return "\\t"
        default: break
        }
        return String(self).utf16.map { unit in
            let digits = String(unit, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }.joined()
    }
}
