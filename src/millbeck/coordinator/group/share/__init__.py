"""Share groups as the group coordinator knows them: members, assignments, and where their state is kept."""
