import Cluster
import Ground
import HTTPRules
import Serving
import Store
import Telemetry

/// What a question is about.
extension PeerAnswering {
    enum Asked {
        case query(SiteRequest)
        case refused(FetchYourselfReason)
    }

    /// What the request for an image is reduced to; nil for anything else.
    var selection: Negotiation? {
        question.key.first == UInt8(ascii: "h") ? question.negotiation : nil
    }

    /// Looks for what may be given without a word from the origin.
    func lookUp(_ query: SiteRequest) -> () -> Resident? {
        { [hall] in
            guard
                case .answer(let found, .fresh) = query.find(
                    in: hall.store, now: SystemClock.now())
            else { return nil }
            return found
        }
    }

    /// The request that the question stands for.
    func asked() -> Asked {
        let key = question.key
        let hash = hall.store.hash(of: key)
        let isImage = key.first != UInt8(ascii: "/")
        let relayed = isImage ? nil : RelayedRequest(question.request)
        let isKey = !isImage || CacheKey.isKey(key, bytesMax: hall.settings.urlBytesMax)
        guard isKey, isImage || relayed != nil else { return .refused(.notUnderstood) }
        guard let plan = hall.settings.sharedPlan(ofKey: key),
            plan.digest == RelayedRequest.policy(of: question.request)
        else {
            hall.counters.add(.peerPoliciesDiffer)
            return .refused(.otherPolicy)
        }
        guard let relayed else {
            return .query(
                SiteRequest(image: key, hash: hash, question.negotiation, on: hall))
        }
        // What is asked for is what stands under the key, and nothing else of the origin's.
        let start = RequestForwarder.start(
            ofKey: key, isSecure: relayed.flags.contains(.isSecure), rules: plan.requestRules)
        guard let start, relayed.head.starts(with: start) else { return .refused(.notUnderstood) }
        let query = SiteRequest(relayed, key: key, hash: hash, by: plan, on: hall)
        // It has come by here already, by way of an origin.
        return query.hasComeBack(to: hall.node) ? .refused(.notAllowed) : .query(query)
    }
}
