package import Ground

extension EntryName {
    /// The name of the answer to a normalised URL that depends on nothing else: its SHA-256; or of
    /// what stands under a key that goes on behind a line feed, placed with the URL before it.
    package init(ofKey key: [UInt8]) {
        let whole = EntryName(sha256(key.span).span)
        guard let urlEnd = key.firstIndex(of: 0x0A) else {
            self = whole
            return
        }
        self = whole.placed(with: EntryName(sha256(key.span.extracting(0..<urlEnd)).span))
    }

    /// The name of the answer to the same URL that was selected by the parts `varies` of a reduced
    /// request; this name if there are none.
    ///
    /// It is the SHA-256 of this name's 32 bytes, of what Vary nominated, and of the request as far
    /// as that was nominated, a byte each, placed with this name.
    package func variant(_ varies: Negotiation, of negotiation: Negotiation) -> EntryName {
        guard varies.rawValue != 0 else { return self }
        var bytes: [UInt8] = []
        append(to: &bytes)
        bytes += [varies.rawValue, negotiation.rawValue & varies.rawValue]
        return EntryName(sha256(bytes.span).span).placed(with: self)
    }

    /// How many names an answer to one request may have.
    package static let candidateCount = 4

    /// The names that an answer to a request which reduces to `wanted` may have; number 0 is that
    /// of an answer without variants.
    package func candidate(_ number: Int, for wanted: Negotiation) -> EntryName {
        let all = Negotiation.types.rawValue | Negotiation.codings.rawValue
        switch number {
        case 0: return self
        case 1: return variant(.types, of: wanted)
        case 2: return variant(.codings, of: wanted)
        default: return variant(Negotiation(rawValue: all), of: wanted)
        }
    }
}
