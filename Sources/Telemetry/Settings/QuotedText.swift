extension String {
    /// Returns the text in quotation marks on one line, truncated after `limit` characters.
    ///
    /// Quotation marks and backslashes are escaped, and all characters that a terminal or a log
    /// might interpret: control and format characters, and separators of lines and paragraphs.
    package func quoted(limit: Int = 200) -> String {
        "\"" + prefix(limit).escaped(quotes: true) + (count > limit ? "…\"" : "\"")
    }

    /// The text with the user information of a URL or an authority replaced by `…`.
    package var withoutUserinfo: String {
        guard let end = lastIndex(of: "@") else { return self }
        let start = firstRange(of: "://").map(\.upperBound) ?? startIndex
        return start <= end ? self[..<start] + "…" + self[end...] : self
    }

    /// The text on one line, without quotation marks, for names that are usually plain.
    package var singleLine: String { self[...].escaped(quotes: false) }
}

extension Substring {
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
    /// True for a character that is not visible, or that breaks or reverses the line.
    package var isInvisible: Bool {
        if isASCII { return value < 0x20 || value == 0x7F }
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: return true
        default: return false
        }
    }
}
