import Cluster
import Ground
import HTTPRules
import Serving
import Store
import Telemetry

/// What a question is about.
extension PeerRequestHandler {
    enum Resolution {
        case siteRequest(SiteRequest)
        case declined(DeclineReason)
    }

    /// What the request for an image is reduced to; nil for anything else.
    var selection: Negotiation? {
        query.key.first == UInt8(ascii: "h") ? query.negotiation : nil
    }

    /// Looks for what may be given without a word from the origin.
    func freshEntryLookup(_ query: SiteRequest) -> () -> MemoryEntry? {
        { [context] in
            guard
                case .found(let found, .fresh) = query.find(
                    in: context.store, now: SystemClock.now())
            else { return nil }
            return found
        }
    }

    /// The request that the question stands for.
    func resolveRequest() -> Resolution {
        let key = query.key
        let hash = context.store.hash(of: key)
        let isImage = key.first != UInt8(ascii: "/")
        let relayed = isImage ? nil : RelayedRequest(query.request)
        let isKey = !isImage || CacheKey.isKey(key, bytesMax: context.settings.urlBytesMax)
        guard isKey, isImage || relayed != nil else { return .declined(.notUnderstood) }
        guard let plan = context.settings.sharedPolicy(ofKey: key),
            plan.digest == RelayedRequest.policy(of: query.request)
        else {
            context.counters.add(.peerPoliciesDiffer)
            return .declined(.otherPolicy)
        }
        guard let relayed else {
            return .siteRequest(
                SiteRequest(image: key, hash: hash, query.negotiation, on: context))
        }
        // What is asked for is what stands under the key, and nothing else of the origin's.
        let start = RequestForwarder.requestLineAndHost(
            ofKey: key, isSecure: relayed.flags.contains(.isSecure), rules: plan.requestFieldRules)
        guard let start, relayed.head.starts(with: start) else { return .declined(.notUnderstood) }
        let query = SiteRequest(relayed, key: key, hash: hash, by: plan, on: context)
        // It has come by here already, by way of an origin.
        return query.isLoop(at: context.node) ? .declined(.notAllowed) : .siteRequest(query)
    }
}
