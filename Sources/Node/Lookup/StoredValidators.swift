import Ground
import HTTPRules
import Store

/// What a conditional request is made of (RFC 9110 §13.1, RFC 9111 §4.3.1); empty for nothing.
struct StoredValidators {
    var entityTag: [UInt8] = []
    var lastModified: [UInt8] = []

    init() {}

    /// Last-Modified validates only if it is strong: two changes in one second would look the same.
    init(_ stale: Resident) {
        entityTag = RenderedHead(stale).text(stale.facts.entityTag)
        if stale.facts.flags.contains(.strongDate), let date = stale.facts.lastModified {
            HTTPDate.append(date, to: &lastModified)
        }
    }
}
