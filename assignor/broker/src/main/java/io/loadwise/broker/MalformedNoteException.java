package io.loadwise.broker;

/** Bytes that are no body of a note; the message names the field. */
final class MalformedNoteException extends Exception {
    private static final long serialVersionUID = 1L;

    MalformedNoteException(String message) {
        super(message);
    }
}
