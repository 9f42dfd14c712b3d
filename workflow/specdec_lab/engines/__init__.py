"""What each server software is: one small file per engine behind one Protocol (M20)."""
