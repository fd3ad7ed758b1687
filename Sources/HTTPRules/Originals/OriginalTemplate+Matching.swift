import Ground

extension OriginalTemplate {
    /// What the target says of its original; nil if it does not look like the template, or if what
    /// should be escaped is not.
    func reference(_ target: SplitTarget, of origin: BaseURL) -> OriginalReference? {
        var found: Match?
        guard matches(target.path, &found), matches(target, &found), let found,
            var text = text(of: found)
        else { return nil }
        if query == .ofOriginal, let query = target.query {
            text += [UInt8(ascii: "?")] + query
        }
        let base = found.placeholder.kind == .original ? OriginalBase(origin) : nil
        return OriginalReference(text: text, base: base)
    }

    /// Where an original was found.
    private struct Match {
        var placeholder: Placeholder
        var value: ArraySlice<UInt8>
        var isInQuery = false
    }

    private func text(of found: Match) -> [UInt8]? {
        let isRaw = found.placeholder.isStarred && !PercentEncoding.isEscapedURL(found.value)
        if isRaw { return Array(found.value) }
        return PercentEncoding.decoded(found.value, plusIsSpace: found.isInQuery)
    }

    private func matches(_ target: ArraySlice<UInt8>, _ found: inout Match?) -> Bool {
        var rest = target
        let last = path.lastIndex { if case .placeholder = $0 { true } else { false } }
        for (index, piece) in path.enumerated() {
            switch piece {
            case .text(let text):
                guard rest.starts(with: text) else { return false }
                rest = rest.dropFirst(text.count)
            case .placeholder(let place):
                let next = text(at: index + 1)
                let value =
                    index == last
                    ? rest.dropLast(next.count) : Self.prefix(of: rest, before: next.first)
                guard !value.isEmpty, place.isStarred || !value.contains(UInt8(ascii: "/"))
                else { return false }
                rest = rest[value.endIndex...]
                if place.kind != .anything { found = Match(placeholder: place, value: value) }
            }
        }
        return rest.isEmpty
    }

    /// The text at `index` of the path; empty at its end.
    private func text(at index: Int) -> [UInt8] {
        if index < path.count, case .text(let text) = path[index] { text } else { [] }
    }

    /// At least one byte, then all before `stop`.
    private static func prefix(
        of text: ArraySlice<UInt8>, before stop: UInt8?
    ) -> ArraySlice<UInt8> {
        text[..<(text.dropFirst().firstIndex { $0 == stop } ?? text.endIndex)]
    }

    private func matches(_ target: SplitTarget, _ found: inout Match?) -> Bool {
        guard case .parameters(let wanted) = query else { return true }
        var values: [ArraySlice<UInt8>?] = Array(repeating: nil, count: wanted.count)
        for parameter in target.parameters {
            guard let index = wanted.firstIndex(where: { parameter.name.elementsEqual($0.name) })
            else { continue }
            guard values[index] == nil else { return false }
            values[index] = parameter.value
        }
        for (parameter, value) in zip(wanted, values) {
            guard let value else { return false }
            switch parameter.value {
            case .text(let text):
                guard value.elementsEqual(text) else { return false }
            case .placeholder(let place):
                guard !value.isEmpty else { return false }
                guard place.kind != .anything else { continue }
                found = Match(placeholder: place, value: value, isInQuery: true)
            }
        }
        return true
    }
}
