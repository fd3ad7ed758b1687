/// Everything that is counted; the raw value is its place among the counters.
///
/// ``MetricFamily/table`` says what each one means.
package enum Metric: Int, CaseIterable, Sendable {
    case requestsHit
    case requestsHitOnDisk
    case requestsRevalidated
    case requestsMissed
    /// Another node had it.
    case requestsFromPeer
    case requestsCollapsed
    /// Given though no longer fresh.
    case requestsStale
    /// Of a site, what no cache may answer.
    case requestsPassed
    case requestsOther

    case answersSuccess
    case answersPartial
    case answersNotModified
    case answersRedirected
    case answersClientError
    case answersServerError
    case sentBytes

    case connectionsOpen
    case connectionsAccepted
    case connectionsRefused
    case requestsMalformed
    /// With certificates, and with a ticket of an earlier one.
    case handshakes
    case handshakesResumed
    case handshakesFailed
    case handshakesRefused
    case signaturesMissing
    case signaturesMalformed
    case signaturesForged
    case signaturesExpired

    case timeoutsHandshake
    case timeoutsIdle
    case timeoutsHead
    case timeoutsBody
    case timeoutsSend
    case timeoutsOriginConnect
    case timeoutsOriginFirstByte
    case timeoutsOriginIdle
    case timeoutsOriginTotal

    case originFetchesStarted
    case originFetchesOK
    case originFetchesFailed
    case originReceivedBytes
    case originRedirects
    case originConnections
    case originConnectionsIdle
    case originWaiting
    case originCircuitsOpen
    case originCircuitOpenings
    case originNames
    case refusedFills
    case refusedWaiters
    case refusedWaitTime
    case refusedMemory
    case refusedQueue
    case refusedCircuit
    case imagesTooLarge
    case imagesMislabelled
    case imagesUnreadable
    case fillsInFlight
    case waiters

    case evictions
    case memoryUsedBytes
    case memoryLimitBytes
    case memoryPinnedBytes
    case memoryEntries
    case memoryHeldLimitBytes
    case memoryYields
    case memoryHeadroomBytes
    case memoryStalledPermille
    case memoryShrinksForRoom
    case memoryShrinksForStalls
    case accessLinesDropped

    case diskUp
    case diskLimitBytes
    case diskUsedBytes
    case diskEntries
    case diskIndexBytes
    case diskQueuedBytes
    case diskRecordsAdmitted
    case diskRecordsReinserted
    case diskRecordsDropped
    case diskRecordsLost
    case diskAdmittedBytes
    case diskWrittenBytes
    case diskReadBytes
    case diskEvictions
    case diskExpirations
    case diskReclaims
    case diskReadsAtOnce
    case diskReadsByThread
    case diskFailures
    case touchesApplied
    case touchesDropped

    case peerGetsSent
    case peerProbesSent
    case peerGetsAnswered
    case peerProbesAnswered
    case peerAnswersTaken
    case peerReceivedBytes
    case touchesSent
    case touchesReceived
    case touchesLost
    case offersMade
    case offersReceived
    case offersKept
    case offersRefused
    case offersDropped
    case offersTaken
    case offersWaiting
    case offersOpen
    case handingOver
    case membersAlive
    case membersSuspected
    case membersDead
    case peerConnections

    case purgesHard
    case purgesSoft
    case purgesRefused
    case invalidationsApplied
    case invalidationRecords
    case fenced
    case membersCounted

    /// The answer's counter for a status code of 200 to 599.
    package static func answers(status: UInt16) -> Metric {
        switch status {
        case 206: .answersPartial
        case 304: .answersNotModified
        case ..<300: .answersSuccess
        case ..<400: .answersRedirected
        case ..<500: .answersClientError
        default: .answersServerError
        }
    }
}
