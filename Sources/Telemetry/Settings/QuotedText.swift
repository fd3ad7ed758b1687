extension String {
    /// The text in quotation marks and on one line, cut after `limit` characters.
    ///
    /// Escaped are quotation marks, backslashes, and whatever a terminal or a log could take for
    /// more than text: control and format characters and the separators of lines and paragraphs.
    package func quoted(limit: Int = 200) -> String {
        "\"" + prefix(limit).escaped(quotes: true) + (count > limit ? "…\"" : "\"")
    }

    /// The text without user name and password, if it is a URL or an authority that has them.
    package var withoutUserinfo: String {
        guard let end = lastIndex(of: "@") else { return self }
        let start = firstRange(of: "://").map(\.upperBound) ?? startIndex
        return start <= end ? self[..<start] + "…" + self[end...] : self
    }

    /// The text on one line, for what is a name and usually a plain one.
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
    /// True for what shows nothing, or breaks or turns the line it stands in.
    package var isInvisible: Bool {
        if isASCII { return value < 0x20 || value == 0x7F }
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: return true
        default: return false
        }
    }
}
