import Ground

/// A parser of ``OriginalTemplate``, from left to right; offsets of faults are those of the given
/// slice.
struct OriginalTemplateParser {
    /// The maximum number of parameters in a template; each is compared with each in a target.
    static let parametersMax = 16

    private var names: Set<String> = []
    private var hasOriginal = false
    /// True after a placeholder with a star in the current path.
    private var isAfterWildcard = false

    private init() {}

    /// Parses `text`, which begins with a slash.
    static func read(_ text: ArraySlice<UInt8>) throws(OriginalRuleFault) -> OriginalTemplate {
        var reader = OriginalTemplateParser()
        let parts = SplitTarget(text)
        let path = try reader.pieces(parts.path)
        reader.isAfterWildcard = false
        let query: OriginalTemplate.Query =
            switch parts.query {
            case nil: .ignored
            case let query? where query.elementsEqual("*".utf8): .ofOriginal
            case let query?: .parameters(try reader.parameters(query))
            }
        guard reader.hasOriginal else {
            throw OriginalRuleFault(.originalMissing, at: text.endIndex)
        }
        return OriginalTemplate(path: path, query: query)
    }

    /// Parses the parameters of a template, whose values are each a text or one placeholder.
    private mutating func parameters(
        _ query: ArraySlice<UInt8>
    ) throws(OriginalRuleFault) -> [OriginalTemplate.Parameter] {
        var parameters: [OriginalTemplate.Parameter] = []
        for text in query.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false) {
            let start = text.startIndex
            guard let equals = text.firstIndex(of: UInt8(ascii: "=")),
                case .text(let name)? = try pieces(text[..<equals]).first,
                name.count == equals - start
            else { throw OriginalRuleFault(.parameter, at: start) }
            guard !parameters.contains(where: { $0.name == name }) else {
                throw OriginalRuleFault(.parameterDuplicated, at: start)
            }
            guard parameters.count < Self.parametersMax else {
                throw OriginalRuleFault(.tooManyParameters, at: start)
            }
            let value = try pieces(text[(equals + 1)...])
            guard value.count <= 1 else { throw OriginalRuleFault(.value, at: equals + 1) }
            if case .placeholder(let place)? = value.first, place.isStarred {
                throw OriginalRuleFault(.wildcardInQuery, at: equals + 1)
            }
            parameters.append(
                OriginalTemplate.Parameter(name: name, value: value.first ?? .text([])))
        }
        return parameters
    }

    /// Splits a text at braces into texts and placeholders.
    private mutating func pieces(
        _ text: ArraySlice<UInt8>
    ) throws(OriginalRuleFault) -> [OriginalTemplate.Piece] {
        var pieces: [OriginalTemplate.Piece] = []
        var rest = text
        while let byte = rest.first {
            guard byte == UInt8(ascii: "{") else {
                let literal = rest.prefix { $0 != UInt8(ascii: "{") }
                pieces.append(.text(try Self.literal(literal)))
                rest = rest[literal.endIndex...]
                continue
            }
            if case .placeholder? = pieces.last {
                throw OriginalRuleFault(.adjacentPlaceholders, at: rest.startIndex)
            }
            guard let end = rest.firstIndex(of: UInt8(ascii: "}")) else {
                throw OriginalRuleFault(.braceNotClosed, at: rest.startIndex)
            }
            pieces.append(.placeholder(try placeholder(rest[..<end])))
            rest = rest[(end + 1)...]
        }
        return pieces
    }

    /// Returns the bytes of `text`; throws if one of them needs an escape or is a closing brace.
    private static func literal(
        _ text: ArraySlice<UInt8>
    ) throws(OriginalRuleFault) -> [UInt8] {
        for index in text.indices {
            let byte = text[index]
            if ByteSet.target.contains(byte) || byte == UInt8(ascii: "%") { continue }
            let problem: OriginalRuleFault.Problem =
                byte == UInt8(ascii: "}") ? .braceNotOpened : .unescapedByte
            throw OriginalRuleFault(problem, at: index)
        }
        return Array(text)
    }

    /// Parses the placeholder in `text`, which begins with the opening brace and lacks the closing
    /// one.
    private mutating func placeholder(
        _ text: ArraySlice<UInt8>
    ) throws(OriginalRuleFault) -> OriginalTemplate.Placeholder {
        let start = text.startIndex
        let isStarred = text.last == UInt8(ascii: "*")
        let letters = text.dropFirst().dropLast(isStarred ? 1 : 0)
        guard !letters.isEmpty, letters.allSatisfy(Self.isName) else {
            throw OriginalRuleFault(.name, at: start)
        }
        let name = String(decoding: letters, as: UTF8.self)
        let place = OriginalTemplate.Placeholder(name: name, isStarred: isStarred)
        if isAfterWildcard { throw OriginalRuleFault(.afterWildcard, at: start) }
        if place.kind == .anything {
            if isStarred { throw OriginalRuleFault(.wildcardNotOriginal, at: start) }
            guard names.insert(name).inserted else {
                throw OriginalRuleFault(.nameDuplicated, at: start)
            }
        } else {
            if hasOriginal { throw OriginalRuleFault(.originalDuplicated, at: start) }
            hasOriginal = true
        }
        isAfterWildcard = isStarred
        return place
    }

    private static func isName(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "-")
            || byte == UInt8(ascii: "_")
    }
}
