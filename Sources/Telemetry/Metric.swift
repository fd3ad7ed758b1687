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
    /// Begun and not brought to their end: the client went, or the rest did not come.
    case answersLeft
    case answersBrokenOff
    case sentBytes

    case connectionsOpen
    case connectionsAccepted
    case connectionsRefused
    /// Idle ones that were closed to make room.
    case connectionsYielded
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
    case originAnswersSuccess
    case originAnswersRedirected
    case originAnswersNotModified
    case originAnswersClientError
    case originAnswersServerError
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
    case originRangesPassed
    case originRangesSmall
    case originRangesAgain
    case originRangesLimited
    case originUnreadBytes
    case originRedirects
    case originConnections
    case originConnectionsIdle
    case originWaiting
    case originCircuitsOpen
    case originCircuitOpenings
    case originOverruns
    case upgrades
    case upgradesRefused
    case originNames
    case refusedFills
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
    case fillsInFlight
    case waiters

    case evictionsForRoom
    case evictionsForPlace
    case evictionsForShare
    case evictionsForLimit
    case evictionsForPressure
    case evictionsPurged
    /// Of sites, for others of the same URL.
    case variantsDropped
    case memoryUsedBytes
    case memoryLimitBytes
    case memoryBodyBytes
    case memoryOverheadBytes
    case memoryFillingBytes
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
    case diskSegmentsFree
    case diskSegmentsOpen
    case diskSegmentsClosed
    case diskIndexBytes
    case diskQueuedBytes
    case diskRecordsAdmitted
    case diskRecordsReinserted
    case diskRecordsCrowdedOut
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
    case journalSyncs
    case touchesApplied
    case touchesMerged
    case touchesDropped

    case peerGetsSent
    case peerProbesSent
    case peerGetsAnswered
    case peerProbesAnswered
    case peerQuestionsLost
    case peerProbesLate
    case peerPoliciesDiffer
    case peerAnswersTaken
    case peerReceivedBytes
    case peerFramesSent
    case peerSentBytes
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
    case peerHandshakes
    case peerHandshakesFailed
    case peerFaults
    case headsRefusedOfPeers
    case headsRefusedOnDisk
    case gossipPingsSent
    case gossipAcksSent
    case gossipPingRequestsSent
    case gossipNacksSent
    case gossipNewsSent
    case gossipTablesSent
    case gossipPingsReceived
    case gossipAcksReceived
    case gossipPingRequestsReceived
    case gossipNacksReceived
    case gossipNewsReceived
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

    /// The counter of an origin's answer for a status code of 200 to 599.
    package static func originAnswers(status: UInt16) -> Metric {
        switch status {
        case 304: .originAnswersNotModified
        case ..<300: .originAnswersSuccess
        case ..<400: .originAnswersRedirected
        case ..<500: .originAnswersClientError
        default: .originAnswersServerError
        }
    }
}
