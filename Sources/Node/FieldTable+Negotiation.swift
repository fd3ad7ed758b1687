import Ground
import HTTPRules
import Wire

extension FieldTable {
    /// What is left of Accept and Accept-Encoding for the origin; `bytes` are those that the lines
    /// lie in.
    @inline(__always)
    borrowing func negotiation(_ bytes: Span<UInt8>) -> Negotiation {
        // Not `[]`: a literal of a set from another room is made by generic code at run time.
        guard present.contains(.accept) || present.contains(.acceptEncoding) else {
            return Negotiation(rawValue: 0)
        }
        return reduced(bytes)
    }

    private borrowing func reduced(_ bytes: Span<UInt8>) -> Negotiation {
        var rules = NegotiationRules()
        for index in 0..<count {
            let line = self[index]
            switch line.id {
            case .accept: rules.addAccept(bytes, at: line.value.range)
            case .acceptEncoding: rules.addAcceptEncoding(bytes, at: line.value.range)
            default: continue
            }
        }
        return rules.negotiation
    }
}
