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
    case requestsBypassed
    case requestsGenerated

    case responsesSuccess
    case responsesPartial
    case responsesNotModified
    case responsesRedirected
    case responsesClientError
    case responsesServerError
    /// Begun and not brought to their end: the client went, or the rest did not come.
    case responsesClientClosed
    case responsesAborted
    case sentBytes

    case connectionsOpen
    case connectionsAccepted
    case connectionsRefused
    /// Idle ones that were closed to make room.
    case connectionsEvicted
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
    /// Nobody wanted the rest.
    case originFetchesAbandoned
    case originResponsesSuccess
    case originResponsesRedirected
    case originResponsesNotModified
    case originResponsesClientError
    case originResponsesServerError
    case originFailuresNotAllowed
    case originFailuresName
    case originFailuresConnect
    case originFailuresTLS
    case originFailuresTimeout
    case originFailuresBroken
    case originFailuresProtocol
    case originFailuresTooLarge
    case originFailuresRedirects
    case originFailuresCircuit
    case originFailuresLimit
    case originFailuresStopping
    case originReceivedBytes
    case originRangesPartial
    case originRangesSmall
    case originRangesRepeated
    case originRangesLimited
    case originUnreadBytes
    case originRedirects
    case originConnections
    case originConnectionsIdle
    case originFetchesQueued
    case originCircuitsOpen
    case originCircuitOpenings
    case originOverruns
    case upgrades
    case upgradesRefused
    case originNamesCached
    case refusedFetches
    case refusedShare
    case refusedWaiters
    case refusedWaitTime
    case refusedMemory
    case refusedQueue
    case refusedCircuit
    case imagesTooLarge
    case imagesMislabelled
    case imagesCoded
    case imagesUnreadable
    case fetchesInFlight
    case waiters

    case evictionsForCapacity
    case evictionsForEntryLimit
    case evictionsForShare
    case evictionsForLoweredLimit
    case evictionsForPressure
    case evictionsPurged
    /// Of sites, for others of the same URL.
    case variantsDropped
    case memoryUsedBytes
    case memoryLimitBytes
    case memoryBodyBytes
    case memoryOverheadBytes
    case memoryFetchBytes
    case memoryPinnedBytes
    case memoryEntries
    case memoryEffectiveLimitBytes
    case memoryUnderPressure
    case memoryHeadroomBytes
    case memoryStalledPermille
    case memoryShrinksForHeadroom
    case memoryShrinksForStalls
    case accessLinesDropped

    case diskUp
    case diskLimitBytes
    case diskUsedBytes
    case diskEntries
    case diskSegmentsFree
    case diskSegmentsOpen
    case diskSegmentsClosed
    case diskIndexBytes
    case diskQueuedBytes
    case diskRecordsAdmitted
    case diskRecordsReinserted
    case diskRecordsQueueFull
    case diskRecordsDropped
    case diskRecordsLost
    case diskAdmittedBytes
    case diskWrittenBytes
    case diskReadBytes
    case diskEvictions
    case diskExpirations
    case diskReclaims
    case diskReadsFromPageCache
    case diskReadsByThread
    case diskFailures
    case journalSyncs
    case touchesApplied
    case touchesMerged
    case touchesDropped

    case peerGetsSent
    case peerProbesSent
    case peerGetsReceived
    case peerProbesReceived
    case peerRequestsFailed
    case peerProbesTimedOut
    case peerPoliciesDiffer
    case peerResponsesUsed
    case peerReceivedBytes
    case peerFramesSent
    case peerSentBytes
    case touchesSent
    case touchesReceived
    case touchesLost
    case offersSent
    case offersReceived
    case offersAccepted
    case offersRefused
    case offersDropped
    case offersFetched
    case offersQueued
    case offersUnanswered
    case handoffActive
    case membersAlive
    case membersSuspected
    case membersDead
    case peerConnections
    case peerHandshakes
    case peerHandshakesFailed
    case peerFaults
    case headsRefusedFromPeers
    case headsRefusedOnDisk
    case gossipPingsSent
    case gossipAcksSent
    case gossipPingRequestsSent
    case gossipNacksSent
    case gossipUpdatesSent
    case gossipTablesSent
    case gossipPingsReceived
    case gossipAcksReceived
    case gossipPingRequestsReceived
    case gossipNacksReceived
    case gossipUpdatesReceived
    case gossipTablesReceived
    case memberChangesToAlive
    case memberChangesToSuspected
    case memberChangesToDead
    case memberChangesToLeft
    case refutations

    case purgesHard
    case purgesSoft
    case purgesRefused
    case invalidationsApplied
    case invalidationRecords
    case invalidationNames
    case receiptsPending
    case fenced
    case joining
    case voters

    /// The answer's counter for a status code of 200 to 599.
    package static func responses(status: UInt16) -> Metric {
        switch status {
        case 206: .responsesPartial
        case 304: .responsesNotModified
        case ..<300: .responsesSuccess
        case ..<400: .responsesRedirected
        case ..<500: .responsesClientError
        default: .responsesServerError
        }
    }

    /// The counter of an origin's answer for a status code of 200 to 599.
    package static func originResponses(status: UInt16) -> Metric {
        switch status {
        case 304: .originResponsesNotModified
        case ..<300: .originResponsesSuccess
        case ..<400: .originResponsesRedirected
        case ..<500: .originResponsesClientError
        default: .originResponsesServerError
        }
    }
}
