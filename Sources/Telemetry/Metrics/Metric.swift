/// A counter or gauge of the node; the raw value is its index in the counters.
///
/// ``MetricTable`` describes each of them.
package enum Metric: Int, CaseIterable, Sendable {
    case requestsHit
    case requestsHitOnDisk
    case requestsRevalidated
    case requestsMissed
    /// Served by another node.
    case requestsFromPeer
    case requestsCollapsed
    /// Served although stale.
    case requestsStale
    /// Requests to a site that must not be served from a cache.
    case requestsBypassed
    case requestsGenerated

    case responsesSuccess
    case responsesPartial
    case responsesNotModified
    case responsesRedirected
    case responsesClientError
    case responsesServerError
    /// Responses not started or not completed, because the client closed the connection.
    case responsesClientClosed
    /// Responses that this node aborted, because the rest did not arrive.
    case responsesAborted
    case sentBytes

    case connectionsOpen
    case connectionsAccepted
    case connectionsRefused
    /// Idle connections closed in favour of new ones.
    case connectionsEvicted
    case requestsMalformed
    /// Full handshakes, with certificates.
    case handshakes
    /// Handshakes with a session ticket.
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
    /// Fetches aborted because no client waited for the rest.
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
    /// Variants of a site's URL evicted in favour of others.
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

    /// Returns the counter of responses for a status code of 200 to 599; 206 and 304 have their
    /// own.
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

    /// Returns the counter of origin responses for a status code of 200 to 599; 304 has its own.
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
